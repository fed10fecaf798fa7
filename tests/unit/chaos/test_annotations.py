"""Actions as annotations: what Grafana is sent, and what happens where none answers."""

from collections.abc import Iterator

import pytest

from laststand.chaos.process.annotations import Annotations
from laststand.emulator.cluster.containers.monitoring import ANNOTATION_TAG
from laststand.emulator.core.errors import ConfigError
from tests.fake_grafana import FakeGrafana

SECOND_NS = 1_000_000_000


@pytest.fixture
def grafana() -> Iterator[FakeGrafana]:
    with FakeGrafana() as server:
        yield server


def tell(annotations: Annotations, *texts: str) -> None:
    for text in texts:
        annotations.send(text, tags=("kill",), begun_ns=5 * SECOND_NS, ended_ns=6 * SECOND_NS)
    annotations.close()


def test_an_action_becomes_an_annotation_that_the_dashboard_shows(grafana: FakeGrafana) -> None:
    tell(Annotations(f"{grafana.url}/"), "{kill: {node: 1}}: gone")
    [(path, authorization, body)] = grafana.got
    assert path == "/api/annotations"
    assert authorization is None
    assert body == {
        "time": 5000,
        "timeEnd": 6000,
        "tags": [ANNOTATION_TAG, "kill"],
        "text": "{kill: {node: 1}}: gone",
    }


def test_a_user_of_the_url_is_sent_as_basic_authorization(grafana: FakeGrafana) -> None:
    tell(Annotations(f"{grafana.url}/grafana".replace("//", "//me:p%40ss@")), "a step")
    [(path, authorization, _)] = grafana.got
    assert path == "/grafana/api/annotations"
    assert authorization == "Basic bWU6cEBzcw=="


def test_what_is_refused_does_not_hold_up_the_next(grafana: FakeGrafana) -> None:
    grafana.refusals = 1
    tell(Annotations(grafana.url), "first", "second")
    assert [body["text"] for _, _, body in grafana.got] == ["first", "second"]


@pytest.mark.parametrize("url", [None, "", "http://127.0.0.1:1"])
def test_nobody_needs_a_grafana(url: str | None) -> None:
    tell(Annotations(url), "a step")


@pytest.mark.parametrize("url", ["grafana:3000", "ftp://grafana", "http://"])
def test_what_is_no_url_is_an_error_of_the_user(url: str) -> None:
    with pytest.raises(ConfigError, match="LASTSTAND_GRAFANA"):
        Annotations(url)
