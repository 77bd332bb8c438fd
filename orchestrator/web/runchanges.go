package web

func (p *Page) addRunChanges() {}
