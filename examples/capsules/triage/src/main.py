"""Sorts an inbox. Software first: only what the rules leave open costs a question."""

import aod

import rules

ANSWER = {
    "type": "object",
    "properties": {
        "queue": {"type": "string", "enum": [*rules.QUEUES]},
        "urgent": {"type": "boolean"},
    },
    "required": ["queue", "urgent"],
    "additionalProperties": False,
}


def execute(payload):
    messages = payload["messages"]
    tickets = [by_rules(message) for message in messages]
    open_ones = [n for n, ticket in enumerate(tickets) if ticket is None]
    for count, n in enumerate(open_ones):
        aod.progress(100 * count / len(open_ones), "asking")
        tickets[n] = by_model(messages[n])
    return {"tickets": tickets, "asked": len(open_ones)}


def by_rules(message):
    queue = rules.queue(message["text"])
    return queue and ticket(message, queue, rules.is_urgent(message["text"]), "rules")


def by_model(message):
    """The model's ticket. Where none answers, a person has to look: it is left unsorted."""
    values = {"message": message["text"], "queues": ", ".join(rules.QUEUES)}
    try:
        answer = aod.ask(values=values, output=ANSWER).output
    except aod.AgentError as error:
        aod.log(f"no model answered: {error.kind}")
        return ticket(message, "unsorted", rules.is_urgent(message["text"]), "nobody")
    return ticket(message, answer["queue"], answer["urgent"], "model")


def ticket(message, queue, urgent, decided_by):
    return {"id": message["id"], "queue": queue, "urgent": urgent, "decided_by": decided_by}
