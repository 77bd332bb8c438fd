package web

func (p *Page) addRunFlow() {}
