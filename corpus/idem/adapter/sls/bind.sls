one:
  thing.present:
  - path: $DIR/one
  - color: blue
two:
  thing.present:
  - path: $DIR/two
  - color: ${thing:one:resource_id}
