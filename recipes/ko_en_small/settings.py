"""How every round of ko-en-small is trained, unless it says otherwise."""

from munjang import TrainConfig

ROUND = TrainConfig(
    max_steps=1500,
    together=True,
    mixing="round_robin",
    learning_rate=8e-5,
    warmup=0.1,
    schedule="cosine",
    max_length=320,
    ema=0.998,
    batch_tokens=131_072,
    matryoshka=(384, 256, 128, 64),
    matryoshka_weights=(1.0, 0.4, 0.3, 0.2),
    save_every=200,
    seed=7,
)
