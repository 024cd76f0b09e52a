"""The architectures we compute ourselves, by `model_type` of config.json. To add one: a file and a line here."""

from munjang.nn.families.albert import ALBERT
from munjang.nn.families.base import Family
from munjang.nn.families.bert import BERT, CAMEMBERT, ELECTRA, ROBERTA, XLM_ROBERTA
from munjang.nn.families.distilbert import DISTILBERT
from munjang.nn.families.modernbert import MODERNBERT
from munjang.nn.families.mpnet import MPNET

FAMILIES: dict[str, Family] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": XLM_ROBERTA,
    "camembert": CAMEMBERT,
    "electra": ELECTRA,
    "albert": ALBERT,
    "distilbert": DISTILBERT,
    "mpnet": MPNET,
    "modernbert": MODERNBERT,
}
