"""SVG drawing of a node's GPUs in Python: a page has thousands of pieces, and a template is far slower."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from quotas.pools.gpu_map import NodeRow, Segment
from quotas.pools.gpu_reports import GpuReport

register = template.Library()
WHOLE = 'width="100%" height="100%"'


@register.simple_tag
def gpu_cells(row: NodeRow, *, is_cut: bool) -> SafeString:
    """Draw each GPU: who has which part of it, and beneath, how busy it is if that is known of this GPU."""
    return SafeString("".join(_gpu(pieces, report, is_cut=is_cut) for pieces, report in row.cells))


@register.simple_tag
def gpu_sample(kind: str, *, is_reclaimed: bool = False) -> SafeString:
    """Draw one cell of a kind, for the legend."""
    pieces = '<rect class="asked-back" {whole}></rect>' if is_reclaimed else ""
    return format_html(
        '<svg class="gpu-cell" aria-hidden="true" focusable="false">'
        '<rect class="is-{kind}" {whole}></rect>' + pieces + "</svg>",
        kind=kind,
        whole=SafeString(WHOLE),
    )


def _gpu(pieces: Iterable[Segment], report: GpuReport | None, *, is_cut: bool) -> str:
    words = escape(report.words) if report else ""
    is_broken = report is not None and report.is_broken
    classes = f"gpu-cell{' is-cut' if is_cut else ''}{' is-broken' if is_broken else ''}"
    drawn = "".join(_piece(piece, words) for piece in pieces)
    use = _use(report, words) if report else ""
    return f'<span class="gpu-one"><svg class="{classes}" focusable="false">{drawn}</svg>{use}</span>'


def _piece(piece: Segment, report: str) -> str:
    whose = escape(piece.words)
    place = f'x="{piece.start:.4g}%" width="{piece.width:.4g}%" height="100%"'
    title = f"{whose}\n{report}" if report else whose
    drawn = f'<rect class="is-{piece.kind}" {place}><title>{title}</title></rect>'
    if piece.is_reclaimed:
        drawn += f'<rect class="asked-back" {place}><title>{whose}</title></rect>'
    return drawn


def _use(report: GpuReport, words: str) -> str:
    bar = ""
    if report.is_broken:
        bar = f'<rect class="broken" {WHOLE}></rect>'
    elif report.use_percent is not None:
        bar = f'<rect class="use-{report.level}" width="{report.use_percent}%" height="100%"></rect>'
    track = f'<title>{words}</title><rect class="track" {WHOLE}></rect>'
    return f'<svg class="gpu-use" aria-hidden="true" focusable="false">{track}{bar}</svg>'
