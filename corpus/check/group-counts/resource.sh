#!/bin/sh
# Each set is seen in the state.
results() {
    grep -o '"name":"[^"]*","type":"[^"]*"' | cat | sed "s|.*|{&,\"result\":$1}|" | paste -sd , | sed 's/.*/[&]/'
}
[ -e made ] && there=true || there=false
case $1 in
    get) results "{\"actualState\":{\"sets\":$(cat made 2>/dev/null | wc -c)}}" ;;
    set) printf x >> made; results '{"afterState":{}}' ;;
    test) results "{\"inDesiredState\":$there}" ;;
esac
