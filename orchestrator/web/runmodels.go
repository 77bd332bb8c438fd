package web

func (p *Page) addRunModels() {}
