"""Ask a running server through one client library, with what it sends by default; print its answer as JSON.

python ask.py NAME URL TEXT...    (in the venv of requirements.txt; the first text is the query where there is one)
"""

import json
import sys
from collections.abc import Callable
from typing import Any

KEY = "any"


def langchain_openai(url: str, texts: list[str]) -> Any:
    from langchain_openai import OpenAIEmbeddings

    # without check_embedding_ctx_length=False it sends ids of OpenAI's own tokenizer
    client = OpenAIEmbeddings(base_url=f"{url}/v1", api_key=KEY, model="tiny", check_embedding_ctx_length=False)
    return {"vectors": client.embed_documents(texts), "query": client.embed_query(texts[0])}


def langchain_huggingface(url: str, texts: list[str]) -> Any:
    from huggingface_hub import InferenceClient
    from langchain_huggingface import HuggingFaceEndpointEmbeddings

    client = HuggingFaceEndpointEmbeddings(model="tiny", huggingfacehub_api_token=KEY)
    client.client = InferenceClient(url, token=KEY)  # since 1.2 it takes no address as a model
    return {"vectors": client.embed_documents(texts), "query": client.embed_query(texts[0])}


def llama_index_openai(url: str, texts: list[str]) -> Any:
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    client = OpenAILikeEmbedding(model_name="tiny", api_base=f"{url}/v1", api_key=KEY)
    return {"vectors": client.get_text_embedding_batch(texts), "query": client.get_query_embedding(texts[0])}


def llama_index_tei(url: str, texts: list[str]) -> Any:
    from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

    client = TextEmbeddingsInference(model_name="tiny", base_url=url, query_instruction="", text_instruction="")
    return {"vectors": client.get_text_embedding_batch(texts), "query": client.get_query_embedding(texts[0])}


def llama_index_cohere(url: str, texts: list[str]) -> Any:
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.postprocessor.cohere_rerank import CohereRerank

    client = CohereRerank(model="ranker", api_key=KEY, base_url=url, top_n=len(texts))
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.0) for text in texts]
    return {"scores": {hit.node.text: hit.score for hit in client.postprocess_nodes(nodes, query_str=texts[0])}}


def haystack_openai(url: str, texts: list[str]) -> Any:
    from haystack import Document
    from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
    from haystack.utils import Secret

    same: dict[str, Any] = {"api_key": Secret.from_token(KEY), "api_base_url": f"{url}/v1", "model": "tiny"}
    documents = OpenAIDocumentEmbedder(**same, progress_bar=False).run([Document(content=text) for text in texts])
    return {
        "vectors": [document.embedding for document in documents["documents"]],
        "query": OpenAITextEmbedder(**same).run(texts[0])["embedding"],
    }


def haystack_tei(url: str, texts: list[str]) -> Any:
    from haystack import Document
    from haystack.utils import Secret
    from haystack_integrations.components.embedders.huggingface_api import HuggingFaceAPIDocumentEmbedder
    from haystack_integrations.components.rankers.huggingface_api import HuggingFaceTEIRanker

    token, documents = Secret.from_token(KEY), [Document(content=text) for text in texts]
    embedder = HuggingFaceAPIDocumentEmbedder("text_embeddings_inference", {"url": url}, token, progress_bar=False)
    ranker = HuggingFaceTEIRanker(url=url, top_k=len(texts), token=token)
    return {
        "vectors": [document.embedding for document in embedder.run(documents)["documents"]],
        "scores": {hit.content: hit.score for hit in ranker.run(query=texts[0], documents=documents)["documents"]},
    }


def litellm(url: str, texts: list[str]) -> Any:
    import litellm

    found = litellm.embedding(model="openai/tiny", input=texts, api_base=f"{url}/v1", api_key=KEY)
    place: dict[str, Any] = {"api_base": f"{url}/v2/rerank", "api_key": KEY}
    hits = litellm.rerank(model="cohere/ranker", query=texts[0], documents=texts, **place)
    # without input_type it asks the Hub what kind of model that is
    tei = litellm.embedding(model="huggingface/tiny", input=texts, api_base=url, api_key=KEY, input_type="embed")
    rows = [row["embedding"] for row in found.data]
    scores = {texts[hit["index"]]: hit["relevance_score"] for hit in hits.results}
    return {"vectors": rows, "scores": scores, "normalized": [row["embedding"] for row in tei.data]}


CLIENTS: dict[str, Callable[[str, list[str]], Any]] = {
    function.__name__: function
    for function in (
        langchain_openai,
        langchain_huggingface,
        llama_index_openai,
        llama_index_tei,
        llama_index_cohere,
        haystack_openai,
        haystack_tei,
        litellm,
    )
}

if __name__ == "__main__":
    name, url, *texts = sys.argv[1:]
    print(json.dumps(CLIENTS[name](url, texts), default=float))
