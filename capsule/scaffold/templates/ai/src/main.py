"""Says what a support message is about. Software first: a model is asked only where the
rules can't tell, and its answer counts only if it is one that software can check."""

import aod

from utils import model, rules


def execute(payload: dict) -> dict:
    message = payload["message"]
    category, answered_by = rules.category(message), "rules"
    if category is None:
        category, answered_by = ask_model(message)
    return {
        "category": category,
        "urgent": rules.is_urgent(message),
        "answered_by": answered_by,
    }


def ask_model(message: str) -> tuple:
    """The model's category, or "other" by the rules where no model gives a usable one."""
    try:
        answer = model.ask(message=message, categories=", ".join(rules.CATEGORIES))
    except model.Unavailable as reason:
        aod.log(f"no model was asked: {reason}")
        return "other", "rules"
    category = answer.strip().strip("\"'.").lower()
    if category not in rules.CATEGORIES:
        aod.log("the model's answer is no category and was dropped")
        return "other", "rules"
    return category, "model"
