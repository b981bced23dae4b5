# SPDX-License-Identifier: MIT
# work.pl: work for a perl whose functions are all followed: hashes, sorting, exceptions, patterns, recursion.
my %h;
for my $i (1..20000) { $h{"k".($i%700)} .= chr(65+$i%26) if $i%3;
} my @s = sort { length($h{$a}) <=> length($h{$b}) || $a cmp $b } keys %h;
print join(",", map { "$_=".length($h{$_}) } @s[0..20]), "\n";
for (1..50) { eval { die "x$_\n" };
print $@ if $_%10==0;
} my $t = join " ", 1..3000;
$t =~ s/(\d+)7/<$1>/g;
print length($t),"\n";
printf "%s\n", unpack("H*", pack("NnC", 1,2,3));
local $SIG{ALRM}=sub{die "alarm\n"};
sub f{ my $n=shift;
$n<2?$n:f($n-1)+f($n-2)} print f(17),"\n";
