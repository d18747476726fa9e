#!/bin/sh
# Nobody can say whether all are in the desired state.
results() {
    grep -o '"name":"[^"]*","type":"[^"]*"' | cat | sed "s|.*|{&,\"result\":$1}|" | paste -sd , | sed 's/.*/[&]/'
}
[ -e made ] && there=true || there=false
case $1 in
    get) results "{\"actualState\":{\"there\":$there}}" ;;
    set) touch made; results '{"afterState":{}}' ;;
esac
