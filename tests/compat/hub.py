"""A Hub on a loopback address: the answers that huggingface_hub asks for when it uploads, over files in memory."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

OID = "a" * 40


class Hub(ThreadingHTTPServer):
    """Repositories by name and branch, what was asked, and the objects uploaded beside commits (LFS)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.files: dict[str, dict[str, dict[str, bytes]]] = {}  # by repository, branch and path
        self.objects: dict[str, bytes] = {}
        self.commits: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.private: dict[str, bool] = {}


class Answers(BaseHTTPRequestHandler):
    """The answers."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def answer(self, status: int, content: Any = None, **headers: str) -> None:
        """Send JSON."""
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def read(self) -> bytes:
        """Read the body, which httpx may send in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_HEAD(self) -> None:
        """Answer whether a file is there: owner/name/resolve/branch/path."""
        owner, name, _, branch, path = urlsplit(self.path).path[1:].split("/", 4)
        held = self.server.files.get(f"{owner}/{name}", {}).get(unquote(branch), {}).get(path)
        if held is None:
            self.answer(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found")
        else:
            self.answer(200, None, ETag='"1"', X_Repo_Commit=OID, X_Linked_Size=str(len(held)))

    def do_PUT(self) -> None:
        """Keep an object."""
        self.server.objects[self.path.rsplit("/", 1)[1]] = self.read()
        self.answer(200)

    def do_POST(self) -> None:
        """Create, ask how to upload, commit."""
        hub, body = self.server, self.read()
        hub.tokens.add(self.headers.get("Authorization"))
        path = urlsplit(self.path).path[1:]
        if path == "api/repos/create":
            return self.create(json.loads(body))
        if path == "api/validate-yaml":
            is_right = json.loads(body)["content"].startswith("---\n")
            return self.answer(200 if is_right else 400, {"errors": [] if is_right else [{"message": "no metadata"}]})
        if path.endswith(".git/info/lfs/objects/batch"):
            rows = [
                {**row, "actions": {"upload": {"href": f"{hub.url}/objects/{row['oid']}"}}}
                for row in json.loads(body)["objects"]
            ]
            return self.answer(200, {"transfer": "basic", "objects": rows})
        _, _, owner, name, what, branch = path.split("/", 5)
        branch, branches = unquote(branch), hub.files[f"{owner}/{name}"]
        if what == "branch":
            if branch in branches:
                return self.answer(409, {"error": "Reference already exists"})
            branches[branch] = dict(branches["main"])
            return self.answer(200, {})
        if what == "preupload":
            rows = [
                {
                    "path": row["path"],
                    "uploadMode": "lfs" if row["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for row in json.loads(body)["files"]
            ]
            return self.answer(200, {"files": rows})
        assert what == "commit", path
        return self.commit(f"{owner}/{name}", branch, [json.loads(line) for line in body.splitlines()])

    def create(self, wanted: dict[str, Any]) -> None:
        """Create a repository, of the user "me" where no owner is given."""
        name = f"{wanted.get('organization') or 'me'}/{wanted['name']}"
        if name in self.server.files:
            return self.answer(
                409, {"error": "You already created this model repo", "url": f"{self.server.url}/{name}"}
            )
        is_private = wanted.get("visibility") == "private" or bool(wanted.get("private"))  # newer and older clients
        self.server.files[name], self.server.private[name] = {"main": {}}, is_private
        return self.answer(200, {"url": f"{self.server.url}/{name}"})

    def commit(self, name: str, branch: str, lines: list[dict[str, Any]]) -> None:
        """Put the files of a commit into a branch, or into a pull request."""
        hub, is_request = self.server, "create_pr=1" in self.path
        to = "refs/pr/1" if is_request else branch
        files = hub.files[name].setdefault(to, dict(hub.files[name][branch]))
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                hub.commits.append({"branch": to, **value})
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = hub.objects[value["oid"]]
        found = {"success": True, "commitOid": OID, "commitUrl": f"{hub.url}/{name}/commit/{OID}"}
        return self.answer(200, {**found, "pullRequestUrl": f"{hub.url}/{name}/discussions/1"} if is_request else found)


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Answer inside the block."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
