package web

func (p *Page) addUnits()      {}
func (p *Page) addQuestions()  {}
func (p *Page) addOperations() {}
