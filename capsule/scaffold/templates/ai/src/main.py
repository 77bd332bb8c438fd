"""Says what a support message is about. Software first: a model is asked only where the
rules can't tell, and its answer counts only if it is one that software can check."""

import aod

from utils import rules

ANSWER = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": rules.CATEGORIES}},
    "required": ["category"],
}


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
    values = {"message": message, "categories": ", ".join(rules.CATEGORIES)}
    try:
        answer = aod.ask(values=values, output=ANSWER)  # src/ai/task.md and system.md, filled
    except aod.AgentError as error:
        aod.log(f"no model answered: {error.kind}")
        return "other", "rules"
    return answer.output["category"], "model"
