import aod


def execute(payload: dict) -> dict:
    name = payload["name"].strip()
    if not name:
        raise aod.CapsuleError("the name is blank")
    aod.log("greeting")
    greeting = " ".join([f"Hello, {name}!"] * payload["times"])
    return {"greeting": greeting, "length": len(greeting)}
