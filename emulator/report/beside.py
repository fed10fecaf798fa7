"""Names of runs that are shown side by side."""

from laststand.emulator.report.run_files import ReportedRun


def name_beside(run: ReportedRun, other: ReportedRun) -> str:
    """Returns the label of a run's era; if two runs have the same label, the run directory's name."""
    return run.verdict.era_label if run.verdict.era_label != other.verdict.era_label else run.directory.name
