"""Stand-ins for docker, systemctl and kubectl: they note their calls, and break brokers of ``tests/fake_kafka.py``."""

from pathlib import Path

_PROGRAM = """\
#!/bin/sh
cd {folder} && echo "$(basename "$0") $*" >> calls
for last in "$@"; do :; done
node=${{last##*-}}
case "$(basename "$0") $*" in
*" --signal SIGKILL "*) touch "down-$node" ;;
"kubectl delete pod "*) node=${{3#*-}}; touch "down-$node" ;;
*" start "*) rm -f "down-$node" ;;
"kubectl wait "*) node=${{3##*-}}; rm -f "down-$node" ;;
"docker compose ps "*) echo "container-of-$last" ;;
"docker inspect "* | "docker network ls "*) echo shop ;;
*" laststand=isolated --overwrite") echo isolated > isolated ;;
*" --all laststand-") rm -f isolated ;;
"kubectl get pod "*) cat isolated 2>/dev/null || true ;;
esac
"""


def write_fakes(folder: Path) -> Path:
    """Writes the programs; they note their calls in ``calls`` in the folder. Returns the one that is for PATH."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("docker", "systemctl", "kubectl"):
        (programs / name).write_text(_PROGRAM.format(folder=folder))
        (programs / name).chmod(0o755)
    return programs
