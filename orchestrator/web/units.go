package web

func (p *Page) addUnits() {}
