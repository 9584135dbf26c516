"""TruthfulVQA's eight categories and 21 subcategories (appendix C), explained in our own words."""

from __future__ import annotations

from collections.abc import Mapping

TAXONOMY: Mapping[str, Mapping[str, str]] = {
    "Eye Illusion": {
        "Perceptual Multiplicity": "the picture can be seen as more than one thing",
        "Optical Illusions": "lines, curves or patterns mislead about size, shape or depth; "
        "no object was altered",
    },
    "Perspective Restriction": {
        "Cropped or Partial Observation": "only a part of an object is seen, and something else "
        "seems to continue it",
        "Unconventional Shooting Angles": "an unusual angle distorts size or place",
        "Shape Distortion Caused by Natural Phenomena": "reflection, refraction or light bends a "
        "shape",
    },
    "Contextual Bias": {
        "Background Interference": "an irrelevant background misleads about the subject",
        "Manipulation of Emotional Atmosphere": "a mood misleads about what is happening",
    },
    "Information Hiding": {
        "Visual Information Distortion": "a part of an object is replaced by a look-alike in "
        "colour, shape or size",
        "Blurred/Low-Resolution Processing": "blur or coarse pixels hide what matters",
        "Concealed Features and Information Masking": "something is covered or blends into its "
        "surroundings",
    },
    "Feature Forgery": {
        "Physical Feature Manipulation": "a whole object or scene defies physical laws",
        "Natural Feature Confusion": "a being or plant has the traits of another kind or place",
        "Insertion of Fake Objects or Elements": "an object that does not belong there is put in, "
        "or stands for a part of a body",
    },
    "Fictional Information": {
        "Fabricated Flags and Maps": "a flag or a map that belongs to no real country or place",
        "Imaginary Species": "a creature that does not exist, with parts added, taken away or "
        "rebuilt from something else",
    },
    "Imitative Falsehood": {
        "Misapplied Reasoning Transfer": "a habit of thought leads to a wrong conclusion",
        "Reinforcement of Semantic Bias": "a stereotype suggests a wrong reading",
        "Inheritance of False Information": "a misleading statement invites to be taken over",
    },
    "Information Forgery": {
        "Factual Fabrication": "what is shown or written contradicts common knowledge",
        "Image Manipulation": "the picture was edited, as in a meeting that never took place",
        "False Reasoning": "what stands side by side suggests a wrong cause or order",
    },
}
"""Category to its subcategories, with what each is."""

CATEGORY_OF: Mapping[str, str] = {
    subcategory: category
    for category, subcategories in TAXONOMY.items()
    for subcategory in subcategories
}
