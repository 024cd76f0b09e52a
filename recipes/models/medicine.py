"""Korean questions about English answers: those of MedQuAD follow a few patterns, which have a Korean form.

Names of diseases stay English where no Korean name is known below, as Korean readers write them, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from recipes.models.sources import file, read_table

# {} is the name, {은} and the like a particle that fits its last syllable
PATTERNS = {
    r"What is \(are\) (.+?) \?": ("{이란} 무엇인가요?", "{은} 어떤 병인가요?", "{} 정의"),
    r"What are the symptoms of (.+?) \?": ("{}의 증상은 무엇인가요?", "{} 증상", "{이} 있으면 어떤 증상이 나타나나요?"),
    r"What are the treatments for (.+?) \?": ("{은} 어떻게 치료하나요?", "{} 치료법", "{}의 치료 방법은?"),
    r"What causes (.+?) \?": ("{}의 원인은 무엇인가요?", "{은} 왜 생기나요?", "{} 원인"),
    r"Who is at risk for (.+?)\?? \?": ("누가 {에} 걸릴 위험이 높은가요?", "{} 위험 요인"),
    r"How to diagnose (.+?) \?": ("{은} 어떻게 진단하나요?", "{} 진단 방법"),
    r"How to prevent (.+?) \?": ("{은} 어떻게 예방하나요?", "{} 예방법"),
    r"What is the outlook for (.+?) \?": ("{}의 예후는 어떤가요?", "{} 경과와 예후"),
    r"Is (.+?) inherited \?": ("{은} 유전되나요?", "{은} 유전병인가요?"),
    r"How many people are affected by (.+?) \?": ("{은} 얼마나 흔한가요?", "{} 환자는 몇 명인가요?"),
    r"What are the genetic changes related to (.+?) \?": ("{과} 관련된 유전자 변이는?", "{} 원인 유전자"),
    r"What are the stages of (.+?) \?": ("{}의 병기는 어떻게 나누나요?", "{} 단계"),
    r"What are the complications of (.+?) \?": ("{}의 합병증은?", "{} 합병증"),
    r"What to do for (.+?) \?": ("{이} 있으면 어떻게 해야 하나요?", "{} 식사와 생활 관리"),
    r"what research \(or clinical trials\) is being done for (.+?) \?": ("{에} 대한 연구", "{} 임상 시험"),
    r"Do you have information about (.+?)": ("{에} 대해 알려 주세요", "{} 정보"),
}
NAMES = {
    "acne": "여드름", "alzheimer's disease": "알츠하이머병", "amblyopia": "약시", "anemia": "빈혈",
    "angina": "협심증", "arrhythmia": "부정맥", "asthma": "천식", "atherosclerosis": "동맥경화",
    "attention deficit hyperactivity disorder": "주의력결핍 과잉행동장애", "autism": "자폐증",
    "bladder cancer": "방광암", "breast cancer": "유방암", "bronchitis": "기관지염", "cataract": "백내장",
    "celiac disease": "셀리악병", "cervical cancer": "자궁경부암", "chickenpox": "수두", "cholera": "콜레라",
    "chronic bronchitis": "만성 기관지염", "cirrhosis": "간경변증", "colorectal cancer": "대장암",
    "common cold": "감기", "constipation": "변비", "copd": "만성 폐쇄성 폐질환", "crohn's disease": "크론병",
    "cystic fibrosis": "낭포성 섬유증", "dementia": "치매", "dengue": "뎅기열", "depression": "우울증",
    "diabetes": "당뇨병", "diarrhea": "설사", "down syndrome": "다운 증후군", "dry eye": "안구건조증",
    "dry mouth": "구강건조증", "eczema": "습진", "emphysema": "폐기종", "endometrial cancer": "자궁내막암",
    "epilepsy": "뇌전증", "esophageal cancer": "식도암", "fibromyalgia": "섬유근육통", "food allergy": "식품 알레르기",
    "gallstones": "담석", "gestational diabetes": "임신성 당뇨병", "glaucoma": "녹내장", "gout": "통풍",
    "hay fever": "꽃가루 알레르기", "headache": "두통", "hearing loss": "난청", "heart attack": "심근경색",
    "heart block": "심장 차단", "heart failure": "심부전", "heart murmur": "심잡음", "hemophilia": "혈우병",
    "hemorrhoids": "치질", "hepatitis b": "B형 간염", "hepatitis c": "C형 간염",
    "high blood cholesterol": "고콜레스테롤혈증", "high blood pressure": "고혈압", "hiv/aids": "에이즈",
    "hypothyroidism": "갑상선 기능 저하증", "hyperthyroidism": "갑상선 기능 항진증", "hypoglycemia": "저혈당",
    "insomnia": "불면증", "iron-deficiency anemia": "철결핍성 빈혈", "irritable bowel syndrome": "과민성 대장 증후군",
    "jaundice": "황달", "kidney dialysis": "신장 투석", "kidney failure": "신부전", "kidney stones": "신장 결석",
    "lactose intolerance": "유당불내증", "leukemia": "백혈병", "low blood pressure": "저혈압", "lung cancer": "폐암",
    "lupus": "루푸스", "lyme disease": "라임병", "malaria": "말라리아", "measles": "홍역", "melanoma": "흑색종",
    "meningitis": "수막염", "menopause": "폐경", "migraine": "편두통", "mumps": "유행성 이하선염",
    "multiple sclerosis": "다발성 경화증", "muscular dystrophy": "근이영양증", "narcolepsy": "기면증",
    "obesity": "비만", "osteoarthritis": "골관절염", "osteoporosis": "골다공증", "ovarian cancer": "난소암",
    "overweight and obesity": "과체중과 비만", "pancreatic cancer": "췌장암", "pancreatitis": "췌장염",
    "parkinson's disease": "파킨슨병", "peptic ulcer": "소화성 궤양", "pneumonia": "폐렴",
    "primary cns lymphoma": "원발성 중추신경계 림프종", "prostate cancer": "전립선암", "psoriasis": "건선",
    "pulmonary embolism": "폐색전증", "pulmonary hypertension": "폐고혈압", "rabies": "광견병",
    "renal cell cancer": "신세포암", "rheumatoid arthritis": "류마티스 관절염", "rickets": "구루병",
    "rosacea": "주사비", "sarcoidosis": "유육종증", "schizophrenia": "조현병", "shingles": "대상포진",
    "sickle cell disease": "겸상 적혈구병", "sinusitis": "부비동염", "skin cancer": "피부암",
    "sleep apnea": "수면 무호흡증",
    "spina bifida": "척추갈림증", "stomach cancer": "위암", "stroke": "뇌졸중", "testicular cancer": "고환암",
    "thyroid cancer": "갑상선암", "tinnitus": "이명", "tonsillitis": "편도염", "tuberculosis": "결핵",
    "turner syndrome": "터너 증후군", "type 1 diabetes": "제1형 당뇨병", "type 2 diabetes": "제2형 당뇨병",
    "urinary incontinence": "요실금", "urinary tract infections": "요로 감염", "varicose veins": "하지정맥류",
    "vitiligo": "백반증", "whooping cough": "백일해", "zika": "지카 바이러스",
}  # fmt: skip
PARTICLES = {"은": "은는", "이": "이가", "과": "과와", "이란": ("이란", "란"), "에": "에에"}


def in_korean(question: str, choice: int = 0) -> str | None:
    """Return a question of MedQuAD in Korean.

    >>> in_korean("What are the symptoms of Stroke ?")
    '뇌졸중의 증상은 무엇인가요?'
    >>> in_korean("What causes Rett syndrome ?", 1)
    'Rett syndrome는 왜 생기나요?'
    """
    for pattern, forms in PATTERNS.items():
        match = re.fullmatch(pattern, question.strip())
        if match:
            return _filled(forms[choice % len(forms)], NAMES.get(match[1].lower(), match[1]))
    return None


def _filled(form: str, name: str) -> str:
    return re.sub(r"\{(.*?)\}", lambda part: name + _particle(name, part[1]), form)


def _particle(name: str, particle: str) -> str:
    """Return the form of a particle that fits the last syllable of a name."""
    if not particle:
        return ""
    closed, open_ = PARTICLES[particle]
    last = name[-1]
    return closed if "가" <= last <= "힣" and (ord(last) - ord("가")) % 28 else open_


def medicine(data: Path) -> Iterator[tuple[str, str]]:
    """Yield Korean questions with English answers."""
    table = read_table(file(data, "qa/medquad"), ("question", "answer"))
    for at, (question, answer) in enumerate(zip(table["question"], table["answer"], strict=True)):
        korean = in_korean(question, at)
        if korean:
            yield korean, answer
