there:
  thing.absent:
  - path: $DIR/there
never:
  thing.absent:
  - path: $DIR/never
