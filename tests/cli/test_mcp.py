"""munjang mcp, called by the client of the official SDK over standard input and output."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from munjang.cli import main
from munjang.cli.mcp import server_of
from munjang.index import Index

mcp = pytest.importorskip("mcp")
ROOT = Path(__file__).parents[2]
TEXTS = ["The sea is deep", "바다는 깊다", "A court of law"]


def called(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


def failed(result: Any) -> str:
    assert result.is_error
    text: str = result.content[0].text
    return text


def test_a_client_of_the_sdk(tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    with Index.open(tmp_path / "notes", tiny_bert, device="cpu") as index:
        index.add(TEXTS, ["a", "b", "c"], [{"year": 2000 + n} for n in range(3)])
    arguments = ["-m", "munjang", "mcp", "--index", str(tmp_path / "notes"), "--write", "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    async def scene() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)
        async with mcp.Client(server, read_timeout_seconds=60) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"search", "get", "add", "delete"}
            assert "year (int)" in tools["search"].description
            assert (tools["search"].annotations.read_only_hint, tools["add"].annotations.read_only_hint) == (
                True,
                False,
            )
            hits = called(await client.call_tool("search", {"query": "court of law", "k": 1}))["hits"]
            assert (hits[0]["document_id"], hits[0]["text"], hits[0]["metadata"]) == ("c", TEXTS[2], {"year": 2002})
            some = called(await client.call_tool("search", {"query": "sea", "where": "year < 2001"}))["hits"]
            assert [hit["document_id"] for hit in some] == ["a"]
            assert called(await client.call_tool("get", {"document_id": "b"}))["passages"] == ["바다는 깊다"]
            body = {"documents": ["A new text", "A new text"], "metadata": {"year": 1}}
            (id,) = called(await client.call_tool("add", body))["ids"]
            assert called(await client.call_tool("get", {"document_id": id}))["metadata"] == {"year": 1}
            assert called(await client.call_tool("delete", {"ids": [id]})) == {"deleted": 1}
            assert "no document" in failed(await client.call_tool("get", {"document_id": id}))
            assert "Unknown field 'nothing'" in failed(
                await client.call_tool("search", {"query": "a", "where": "nothing = 1"})
            )
            for wrong in ({"query": "a", "k": 0}, {"query": "a" * 200_000}, {}):
                assert (await client.call_tool("search", wrong)).is_error

    asyncio.run(scene())


def test_a_filter_that_is_always_added(tiny_bert: Path) -> None:
    index = Index.open("memory:", tiny_bert, device="cpu")
    index.add(TEXTS, ["a", "b", "c"], [{"public": n != 2} for n in range(3)])
    server = server_of(index, None, "public = true", can_write=False)

    async def scene() -> None:
        async with mcp.Client(server) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {"search", "get"}
            for where in (None, "public = false", "public = false or public = true"):
                hits = called(await client.call_tool("search", {"query": "court of law", "where": where}))["hits"]
                assert "c" not in {hit["document_id"] for hit in hits}
            around = {"query": "court", "where": "public = true) or (public = false"}
            assert "can't be read" in failed(await client.call_tool("search", around))
            assert called(await client.call_tool("get", {"document_id": "a"}))["passages"] == [TEXTS[0]]
            for hidden in ("c", "' or public = false or document_id = '"):
                assert "no document" in failed(await client.call_tool("get", {"document_id": hidden}))

    asyncio.run(scene())


def test_what_can_be_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["mcp", "--index", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
    assert main(["mcp", "--index", "x", "--write", "--where", "a = 1"]) == 2
    assert "--where" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)  # as if it were not installed
    assert main(["mcp", "--index", "x"]) == 2
    assert "pip install 'munjang[mcp]'" in capsys.readouterr().err
