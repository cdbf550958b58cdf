package protocol

// properties are what an object schema says about members by their names: those of
// the keyword properties, and those that are required.
type properties struct {
	list   []property
	byName map[string]int // into list; nil while a search through list is faster
	needed uint64         // the required bits of all
}

type property struct {
	name     string
	schema   *schema // nil: required only, and as any other in all else
	required uint64  // its bit; 0 is not required, or not one of the first 64 that are
}

// mostSearched is how many names are searched one by one.
const mostSearched = 16

func (p *properties) at(name string) *property {
	for i := range p.list {
		if p.list[i].name == name {
			return &p.list[i]
		}
	}
	p.list = append(p.list, property{name: name})
	return &p.list[len(p.list)-1]
}

// index is called when all are in the list.
func (p *properties) index(required []string) {
	for i, name := range required {
		if i < 64 {
			prop := p.at(name)
			prop.required |= 1 << i
			p.needed |= 1 << i
		}
	}
	if len(p.list) > mostSearched {
		p.byName = make(map[string]int, len(p.list))
		for i := range p.list {
			p.byName[p.list[i].name] = i
		}
	}
}

// find returns the property of a name, nil where there is none. Members mostly come
// in the order of their schema: from is where the search begins, next where the next
// one should.
func (p *properties) find(name []byte, from int) (prop *property, next int) {
	if p.byName != nil {
		if i, ok := p.byName[string(name)]; ok {
			return &p.list[i], 0
		}
		return nil, 0
	}
	for range p.list {
		if from >= len(p.list) {
			from = 0
		}
		prop = &p.list[from]
		from++
		if prop.name == string(name) {
			return prop, from
		}
	}
	return nil, from
}
