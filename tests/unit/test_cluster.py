"""Answers of the API server that arrive in parts."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import kubernetes
import pytest
import urllib3

from components.cluster import ClusterUnreachableError, ForbiddenError, stream

pytestmark = pytest.mark.unit


class Answer:
    """An answer that ends after its parts, or breaks off."""

    def __init__(self, *parts: bytes, breaks: bool = False) -> None:
        self._parts, self._breaks = parts, breaks

    def stream(self) -> Iterator[bytes]:
        yield from self._parts
        if self._breaks:
            raise urllib3.exceptions.ProtocolError("connection broken")


def reading(answer: Answer | HTTPStatus) -> Callable[..., Any]:
    """A read method of the client."""

    def read(*names: str, **options: Any) -> Any:
        assert (names, options["follow"], options["_preload_content"]) == (("head",), True, False)
        if isinstance(answer, HTTPStatus):
            raise kubernetes.client.ApiException(status=answer, reason=answer.phrase)
        return answer

    return read


def test_parts_are_passed_on_as_they_arrive() -> None:
    assert list(stream(reading(Answer(b"a", b"b")), "head", follow=True)) == [b"a", b"b"]


def test_an_answer_that_breaks_off_is_an_error_after_its_parts() -> None:
    parts = stream(reading(Answer(b"a", breaks=True)), "head", follow=True)
    assert next(parts) == b"a"
    with pytest.raises(ClusterUnreachableError, match="has ended the answer: connection broken"):
        next(parts)


def test_a_refusal_is_an_error_and_a_missing_object_is_empty() -> None:
    with pytest.raises(ForbiddenError):
        list(stream(reading(HTTPStatus.FORBIDDEN), "head", follow=True))
    assert list(stream(reading(HTTPStatus.NOT_FOUND), "head", follow=True)) == []
