from pathlib import Path
class ProcessRuntime:
    real = True
    def __init__(self, state: Path): ...
