! P4 as Fortran calls it.
program fortran
  implicit none
  include 'p4f.h'
  integer :: me, all, i, rc, kind, from, length, first, last
  integer :: n(100), got(100)
  double precision :: x(100)

  call p4init
  call p4crpg
  me = p4myid()
  all = p4ntotids()
  if (p4nslaves() /= all - 1) call p4error('slaves', 1)
  call p4getclids(first, last)
  if (p4nclids() /= last - first + 1 .or. p4myclid() /= me - first) call p4error('cluster', 2)
  n = [(i + me, i = 1, 100)]
  call p4send(5, mod(me + 1, all), n, 400, rc)
  if (rc /= 0) call p4error('send', rc)
  kind = 5
  from = -1
  call p4recv(kind, from, got, 400, length, rc)
  if (rc /= 0 .or. length /= 400 .or. from /= mod(me + all - 1, all)) call p4error('receive', rc)
  if (any(got /= [(i + from, i = 1, 100)])) call p4error('data', 3)
  call p4sendx(6, me, n, 400, P4INT, rc)
  kind = -1
  from = me
  call p4recv(kind, from, got, 8, length, rc)
  if (rc /= 1 .or. length /= 8 .or. kind /= 6) call p4error('a message that is too long', rc)
  x = me + 1
  call p4globop(7, x, 100, 8, p4dblmultop, P4DBL, rc)
  if (any(x /= product([(dble(i), i = 1, all)]))) call p4error('product', rc)
  n = me
  call p4globop(8, n, 100, 4, p4intmaxop, P4INT, rc)
  if (any(n /= all - 1)) call p4error('largest', rc)
  kind = 9
  from = 0
  if (me == 0) then
    call p4brdcst(9, x, 800, rc)
  else
    call p4recv(kind, from, x, 800, length, rc)
    if (length /= 800) call p4error('broadcast', length)
  end if
  call p4globarr(10)
  call p4probe(kind, from, rc)
  if (rc /= 0 .or. p4clock() < 0) call p4error('probe', rc)
  call p4cleanup
  if (me == 0) print '(a)', 'ok'
end program fortran
