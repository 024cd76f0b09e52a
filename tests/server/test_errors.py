"""The errors of every route are in its description."""

from tests.server.running import Running

EVERY = {"400", "401", "403", "404", "408", "413", "422", "424", "429", "500", "503"}


def test_every_status_is_documented(server: Running) -> None:
    """A client that is made from /openapi.json knows what a refused request looks like."""
    described = server.client.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            missing = {"400", "401", "403", "404", "408", "413", "422", "424", "429", "500", "503"} - {
                *operation["responses"]
            }
            assert not missing, f"{method} {path}"
    shapes = described["paths"]["/embed"]["post"]["responses"]["422"]["content"]["application/json"]["schema"]["anyOf"]
    answer = server.client.post("/embed", json={"inputs": []})
    assert answer.status_code == 422
    assert set(answer.json()) in [set(shape["required"]) for shape in shapes]


def test_a_method_that_is_not_allowed_names_those_that_are(server: Running) -> None:
    answer = server.client.delete("/embed")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert server.client.put("/documents").headers["allow"] == "DELETE, GET, POST"
