"""Pytest plugin of the gate: `-p tests.gate.plugin --budget=SECONDS`.

A red test is run again, alone, in a pytest of its own after all others. If it is green then, it is reported as flaky
and the run stays green. pytest's own closing line still ends the run.
"""

import subprocess
import sys
import time

import pytest

from tests.gate import pace, verdict

AGAIN_SECONDS = 1200
"""Longest time that a second try may take."""
FAILURES = ("failed", "error")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gate")
    group.addoption(
        "--budget", type=float, metavar="SECONDS", help="time the suite may take on two quiet cores"
    )


@pytest.hookimpl(trylast=True)  # the terminal's reporter is there by now
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(Gate(config), "berth-gate")


class Gate:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.budget: float | None = config.option.budget
        self.verdict = verdict.Verdict()
        self.red: list[str] = []
        self.pace = pace.measure() if self.budget else 1.0
        self.began = time.monotonic()
        self.seconds = 0.0

    @pytest.hookimpl(trylast=True)  # xdist's workers have ended by now
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.seconds = time.monotonic() - self.began
        self.red = self._red()
        as_expected = pytest.ExitCode.TESTS_FAILED if self.red else pytest.ExitCode.OK
        if session.exitstatus != as_expected:  # interrupted or broken: a second try does not help
            return
        self.pace = max(self.pace, pace.measure()) if self.budget else 1.0
        tried = self.red if len(self.red) <= verdict.MOST_TRIED_AGAIN else []
        second = {test: self._green_alone(test) for test in tried}
        self.verdict = verdict.judge(
            second, red=len(self.red), seconds=self.seconds, budget=self.budget, pace=self.pace
        )
        self._move_flaky()
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if self.verdict.faults else pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        if flaky := terminalreporter.stats.get("flaky"):
            terminalreporter.section("flaky: red once, green when run again alone")
            for report in flaky:
                terminalreporter.write_sep("_", report.nodeid)
                write(report.longreprtext)
        terminalreporter.section("gate")
        of = f" of {verdict.clock(self.budget)}" if self.budget else ""
        write(
            f"time {verdict.clock(self.seconds)}{of}; this machine takes {self.pace:.2f} times the reference's"
        )
        write(f"flaky {len(self.verdict.flaky)} of at most {verdict.MOST_FLAKY}")
        for test in self.verdict.flaky:
            write(f"FLAKY {test}", yellow=True)
        for fault in self.verdict.faults:
            write(f"the run fails: {fault}", red=True)

    def _red(self) -> list[str]:
        reports = [report for key in FAILURES for report in self._stats().get(key, [])]
        return sorted({report.nodeid for report in reports})

    def _green_alone(self, test: str) -> bool:
        self._reporter().write_line(f"\nrun again, alone: {test}")
        try:
            again = subprocess.run(self._command(test), cwd=self.config.rootpath, timeout=AGAIN_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return again.returncode == pytest.ExitCode.OK

    def _command(self, test: str) -> list[str]:
        """Return the command of a second pytest, with the options that decide what a test does."""
        profile = self.config.getoption("--hypothesis-profile", None)
        options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
        options += [f"--hypothesis-profile={profile}"] if profile else []
        cut = self.config.getoption("--confcutdir", None)
        options += [f"--confcutdir={cut}"] if cut else []
        return [sys.executable, "-m", "pytest", *options, test]

    def _move_flaky(self) -> None:
        """Count a flaky test once, as flaky, in pytest's closing line."""
        stats = self._stats()
        for key in FAILURES:
            reports = stats.pop(key, [])
            for report in reports:
                known = {other.nodeid for other in stats.get("flaky", [])}
                if report.nodeid not in self.verdict.flaky:
                    stats.setdefault(key, []).append(report)
                elif report.nodeid not in known:
                    stats.setdefault("flaky", []).append(report)

    def _reporter(self) -> pytest.TerminalReporter:
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        assert isinstance(reporter, pytest.TerminalReporter)
        return reporter

    def _stats(self) -> dict[str, list]:
        return self._reporter().stats
