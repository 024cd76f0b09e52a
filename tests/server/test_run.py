"""The socket that the server listens at."""

import asyncio
import socket

import pytest

pytest.importorskip("uvicorn")
from munjang.server.run import bind


def test_answers_are_sent_at_once() -> None:
    """Headers and body are two writes; without this the second one waits 40 ms until the first has been confirmed."""

    async def scene() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bind("127.0.0.1", 0) as bound:
            async with await asyncio.start_server(serve, sock=bound):
                _, writer = await asyncio.open_connection(*bound.getsockname())
                is_on = await asyncio.wait_for(found, 10)
                writer.close()
        return is_on

    assert asyncio.run(scene())
