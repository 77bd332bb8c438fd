def main(payload):
    return {}
