package protocol

// Implementation names a program. Name and Version are required.
type Implementation struct {
	Name, Title, Version, Description, WebsiteURL string
	Icons                                         []Icon
}

// Icon is a picture for a user interface.
type Icon struct {
	Src      string   // an https or data uri
	MIMEType string   // optional
	Sizes    []string // "48x48" or "any"
	Theme    string   // "light" or "dark"; empty for both
}

func (i *Implementation) append(b []byte, rev *revision) []byte {
	b = append(b, '{')
	b = keyString(b, "name", i.Name)
	if rev.has(featTitles) {
		b = keyText(b, "title", i.Title)
	}
	b = keyString(b, "version", i.Version)
	if rev.has(featIcons) {
		b = keyText(b, "description", i.Description)
		b = keyText(b, "websiteUrl", i.WebsiteURL)
		b = appendIcons(b, i.Icons)
	}
	return append(b, '}')
}

// appendIcons appends the member icons, if there are any.
func appendIcons(b []byte, icons []Icon) []byte {
	if len(icons) == 0 {
		return b
	}
	b = append(key(b, "icons"), '[')
	for _, icon := range icons {
		b = append(comma(b), '{')
		b = keyString(b, "src", icon.Src)
		b = keyText(b, "mimeType", icon.MIMEType)
		b = keyStrings(b, "sizes", icon.Sizes)
		b = keyText(b, "theme", icon.Theme)
		b = append(b, '}')
	}
	return append(b, ']')
}

// keyStrings appends an array of strings, nothing where it is empty.
func keyStrings(b []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(key(b, name), '[')
	for _, v := range values {
		b = quote(comma(b), v)
	}
	return append(b, ']')
}
