package main

// addFlow adds a flow that takes and gives any object.
func (s *server) addFlow(name, agent, graph string) {
	s.t.Helper()
	write(s.t, "name: "+name+"\nkind: flow\n"+agent, s.units, name, "agent.yaml")
	write(s.t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, s.units, name, "schema.json")
	write(s.t, graph, s.units, name, "flow.yaml")
}
