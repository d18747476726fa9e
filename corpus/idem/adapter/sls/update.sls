# $DIR/there is {"name": "there", "size": 1, "resource_id": "id-there", "color": "red"} before.
there:
  thing.present:
  - path: $DIR/there
  - color: green
  - size: 3
