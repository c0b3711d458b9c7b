package policy

// NotYet lists what the file declares and no server acts upon yet, a line each. It is
// read and checked all the same, so that a file need not change when that comes; until
// then whoever wrote it must not believe that it protects anything.
func (p *Policy) NotYet() (list []string) {
	for _, t := range p.Tools() {
		if t.observe {
			list = append(list, "tools."+t.Name+".mode: observe is not acted upon yet; the tool is enforced")
		}
	}
	return list
}
