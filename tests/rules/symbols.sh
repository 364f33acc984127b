#!/usr/bin/env bash
# The compiled library asks for no function that prints to the terminal, exits or aborts.
#   symbols.sh NM LIBRARY...
set -euo pipefail
nm=$1
shift

forbidden='exit|_exit|_Exit|quick_exit|abort|__assert_fail|__assert'
forbidden+='|v?printf|v?fprintf|puts|fputs|putchar|putc|fputc|fwrite|perror|__v?printf_chk|__v?fprintf_chk'
forbidden+='|stdout|stderr|_ZSt4cout|_ZSt4cerr|_ZSt4clog|_ZN3hwy5Abort.*'

status=0
for library in "$@"; do
  object=
  while IFS= read -r line; do
    case "$line" in
      *.o:) object=${line%:} && continue ;;
      '') continue ;;
    esac
    symbol=${line##* }
    symbol=${symbol%%@*}
    if [[ $symbol =~ ^($forbidden)$ ]]; then
      echo "$(basename "$library"): $object: asks for $symbol"
      status=1
    fi
  done < <("$nm" --undefined-only "$library")
done
exit $status
