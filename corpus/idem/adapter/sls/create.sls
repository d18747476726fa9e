one:
  thing.present:
  - path: $DIR/one
  - color: blue
