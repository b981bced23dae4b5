# SPDX-License-Identifier: MIT
# work.sh: work for a bash whose functions are all followed: arrays, functions, subshells, patterns.
a=(); for i in {1..2000}; do
a[i]=$((i*7%13))
done
s=0; for x in "${a[@]}"; do
((s+=x))
done
echo $s; f(){ local n=$1; ((n<2)) && { echo $n; return; }; echo $(( $(f $((n-1))) + $(f $((n-2))) )); }; f 6; printf '%s\n' "${a[*]:1:20}" | tr ' ' ':'; [[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
