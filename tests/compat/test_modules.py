import copy
import pickle

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers.base import modules as their_modules
from sentence_transformers.sentence_transformer import modules as their_sentence_modules

from munjang import BiEncoder, compat
from munjang.compat import modules

TEXTS = ["the quick brown fox", "jumps over", "the lazy dog and the cat", ""]
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("mean", "max"))


def built(package, folder, pooling="mean"):
    torch.manual_seed(1)
    ours = package is compat
    base = modules if ours else their_modules
    transformer = base.Transformer(str(folder))
    width = transformer.get_embedding_dimension()
    pooled = (modules if ours else their_sentence_modules).Pooling(width, pooling)
    dense = base.Dense(pooled.get_embedding_dimension(), 7)
    return package.SentenceTransformer(modules=[transformer, pooled, dense, base.Normalize()], device="cpu")


@pytest.mark.parametrize("pooling", MODES)
def test_models_of_modules_give_the_same_vectors(make, pooling):
    folder = make("bert", normalize=False)
    ours, theirs = built(compat, folder, pooling), built(sentence_transformers, folder, pooling)
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=3e-6)
    assert ours.get_embedding_dimension() == theirs.get_embedding_dimension() == 7
    assert isinstance(ours.facade, BiEncoder)


def test_the_forward_pass_gives_what_encode_gives(make, both):
    ours, theirs = both("bert")
    features, theirs_features = ours.preprocess(TEXTS[:3]), theirs.preprocess(TEXTS[:3])
    with torch.no_grad():
        found, wanted = ours(dict(features)), theirs(dict(theirs_features))
    mask = features["attention_mask"].bool()
    torch.testing.assert_close(found["sentence_embedding"], wanted["sentence_embedding"], atol=3e-6, rtol=0)
    torch.testing.assert_close(found["token_embeddings"][mask], wanted["token_embeddings"][mask], atol=1e-5, rtol=0)
    np.testing.assert_allclose(ours.encode(TEXTS[:3]), found["sentence_embedding"].numpy(), atol=3e-6)


def test_a_model_is_a_torch_module_whose_changed_weights_count(make):
    model = compat.SentenceTransformer(str(make("bert")), device="cpu")
    assert isinstance(model, torch.nn.Module)
    assert isinstance(model[0].auto_model, torch.nn.Module)
    assert model[0].auto_model.config.hidden_size == model[0].get_embedding_dimension()
    before, fingerprint = model.encode(TEXTS), model.facade.fingerprint
    model.train()
    loss = model(model.preprocess(TEXTS[:3]))["sentence_embedding"][:, 0].sum()
    loss.backward()
    assert all(p.grad is not None for p in model[0].auto_model.encoder.blocks.parameters())
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    after = model.encode(TEXTS)
    assert np.abs(after - before).max() > 1e-3
    assert model.facade.fingerprint != fingerprint
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_allclose(again.encode(TEXTS), after, atol=3e-6)
        assert again[0].auto_model.encoder is again.facade.network.encoder
        assert again[0].auto_model.encoder is not model[0].auto_model.encoder


def test_a_module_of_ones_own_is_called(make, tmp_path):
    class Twice(torch.nn.Module):
        def forward(self, features):
            features["sentence_embedding"] = 2 * features["sentence_embedding"]
            return features

    plain = compat.SentenceTransformer(str(make("bert", normalize=False)), device="cpu")
    blocks = [plain[0], plain[1], Twice()]
    model = compat.SentenceTransformer(modules=blocks)
    np.testing.assert_allclose(model.encode(TEXTS), 2 * plain.encode(TEXTS), atol=1e-5)
    assert model.encode(TEXTS[0]).ndim == 1
    with pytest.raises(compat.gaps.NotCovered, match="facade"):
        _ = model.facade


def test_what_is_set_on_a_pooling_counts(make):
    model = compat.SentenceTransformer(str(make("bert", normalize=False)), device="cpu")
    mean = model.encode(TEXTS)
    model[1].pooling_mode = "cls"
    assert np.abs(model.encode(TEXTS) - mean).max() > 1e-3


def test_static_embeddings_are_built_from_a_tokenizer(make, tmp_path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(make("bert") / "tokenizer.json"))
    weights = torch.randn(tokenizer.get_vocab_size(), 8)
    ours = compat.SentenceTransformer(modules=[modules.StaticEmbedding(tokenizer, embedding_weights=weights)])
    static = their_sentence_modules.StaticEmbedding(tokenizer, embedding_weights=weights)
    theirs = sentence_transformers.SentenceTransformer(modules=[static])
    np.testing.assert_allclose(ours.encode(TEXTS[:3]), theirs.encode(TEXTS[:3]), atol=1e-6)
    ours.save(str(tmp_path / "static"))
    again = sentence_transformers.SentenceTransformer(str(tmp_path / "static"))
    np.testing.assert_allclose(again.encode(TEXTS[:3]), theirs.encode(TEXTS[:3]), atol=1e-6)


def test_names_of_older_versions():
    with pytest.warns(FutureWarning, match="pooling_mode"):
        pooling = modules.Pooling(8, pooling_mode_cls_token=True, pooling_mode_mean_tokens=True)
    assert pooling.pooling_mode == ("cls", "mean")
    assert pooling.get_embedding_dimension() == 16
    with pytest.raises(ValueError, match="Invalid pooling mode: 'average'"):
        modules.Pooling(8, "average")


def test_dropout_can_be_silenced_like_torchs(both):
    """Code that trains sets the p of every nn.Dropout, and attention_dropout where it is a number."""
    ours, _ = both("bert")
    ours.train()
    features = ours.preprocess(["one text", "another text, longer"])
    with torch.no_grad():
        assert not torch.equal(ours(dict(features))["sentence_embedding"], ours(dict(features))["sentence_embedding"])
        for module in ours.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            if isinstance(getattr(module, "attention_dropout", None), float):
                module.attention_dropout = 0.0
        assert torch.equal(ours(dict(features))["sentence_embedding"], ours(dict(features))["sentence_embedding"])


def test_a_router_sends_queries_and_documents_through_other_modules(both, tmp_path):
    ours, _ = both("bert", normalize=False)
    transformer, pooling = ours[0], ours[1]
    doubled = modules.Dense(32, 32, bias=False, init_weight=2 * torch.eye(32), activation_function=None)
    router = modules.Router.for_query_document([transformer, pooling], [transformer, pooling, doubled])
    model = compat.SentenceTransformer(modules=[router])
    query, document, plain = model.encode_query(["a text"]), model.encode_document(["a text"]), model.encode(["a text"])
    np.testing.assert_allclose(query, ours.encode(["a text"]), atol=1e-5)
    np.testing.assert_allclose(document, 2 * query, atol=1e-5)
    np.testing.assert_array_equal(plain, document)  # the default route
    with pytest.raises(ValueError, match="No route found for task type 'nothing'"):
        model.encode(["a text"], task="nothing")
    model.save(tmp_path / "saved")
    loaded = compat.SentenceTransformer(str(tmp_path / "saved"))
    np.testing.assert_allclose(loaded.encode_document(["a text"]), document, atol=1e-5)
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"))
    np.testing.assert_allclose(theirs.encode_document(["a text"]), document, atol=1e-5)
    np.testing.assert_allclose(theirs.encode_query(["a text"]), query, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_pooling_of_texts_in_one_row(mode):
    """Features without padding, as flash attention has them: cu_seq_lens_q says where each text begins."""
    torch.manual_seed(0)
    states = torch.randn(1, 9, 8)
    flat = {"token_embeddings": states, "cu_seq_lens_q": torch.tensor([0, 2, 6, 9])}
    for package in (modules, their_sentence_modules):
        pooled = package.Pooling(8, mode)(dict(flat))["sentence_embedding"]
        one_by_one = [
            package.Pooling(8, mode)({"token_embeddings": part, "attention_mask": torch.ones(part.shape[:2])})
            for part in states.split([2, 4, 3], dim=1)
        ]
        expected = torch.cat([each["sentence_embedding"] for each in one_by_one])
        torch.testing.assert_close(pooled, expected, atol=1e-6, rtol=1e-5)
