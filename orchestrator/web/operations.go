package web

func (p *Page) addOperations() {}
