package store

import "context"

// Variables returns the documents of all variables in the order of their names.
func (s *Store) Variables(ctx context.Context) ([][]byte, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT doc FROM variables ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var docs [][]byte
	for rows.Next() {
		var doc []byte
		if err := rows.Scan(&doc); err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, rows.Err()
}

// SetVariable writes a variable; a nil document removes it. It reports whether there was one before.
func (s *Store) SetVariable(name string, doc []byte) (existed bool, err error) {
	err = s.do(func(w *writer) error {
		ctx := context.Background()
		res, err := w.conn.ExecContext(ctx, "DELETE FROM variables WHERE name = ?", name)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		existed = n > 0
		if err == nil && doc != nil {
			_, err = w.conn.ExecContext(ctx, "INSERT INTO variables(name, doc) VALUES(?, ?)", name, doc)
		}
		return err
	})
	return existed, err
}
