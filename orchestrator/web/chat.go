package web

func (p *Page) addChat() {}
