package web

func (p *Page) addQuestions() {}
