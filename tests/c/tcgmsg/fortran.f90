! TCGMSG as Fortran calls it; INTEGER has whatever length the compiler was told.
program fortran
  implicit none
  include 'tcgmsg.fh'
  include 'msgtypesf.h'
  integer, parameter :: many = 1000
  double precision :: x(many)
  integer :: n(many), got(many), taken(1), me, nodes, left, right, length, from, i, next
  character(len=4000) :: folder, name
  character(len=8) :: op

  call pbeginf
  me = nodeid()
  nodes = nnodes()
  if (tcgready() /= 1) call parerr(1)
  right = mod(me + 1, nodes)
  left = mod(me + nodes - 1, nodes)
  n = [(i + me, i = 1, many)]
  if (nodes > 1) then
    call snd(1 + msgint, n, mitob(many), right, 0)
    call rcv(1 + msgint, got, mitob(many), length, left, from, 1)
    call waitcom(-1)
    if (length /= mitob(many) .or. from /= left) call parerr(2)
    if (any(got /= [(i + left, i = 1, many)])) call parerr(3)
  end if
  call brdcst(2 + msgint, n, mitob(many), nodes - 1)
  if (any(n /= [(i + nodes - 1, i = 1, many)])) call parerr(4)
  n = me + 1
  x = 0.25d0 * n
  op = '+'
  call igop(3, n, many, op)
  call dgop(4, x, many, '+')
  if (any(2 * n /= nodes * (nodes + 1)) .or. any(x /= 0.25d0 * n)) call parerr(5)
  n = -me
  call igop(5, n, many, 'absmax')
  if (nodes > 1 .and. any(n /= nodes - 1)) call parerr(6)
  taken = 0
  do
    next = nxtval(nodes)
    if (next >= 100) exit
    taken = taken + next
  end do
  next = nxtval(-nodes)
  call igop(6, taken, 1, '+')
  if (taken(1) /= 4950) call parerr(7)
  if (mdtob(3) /= 24 .or. mitob(4) * 64 /= mdtob(4) * storage_size(me)) call parerr(8)
  if (mitod(3) /= merge(2, 3, storage_size(me) == 32)) call parerr(9)
  call get_command_argument(1, folder)
  write (name, '(a, a, i0)') trim(folder), '/fortran.', me
  if (me == 0) then
    open (unit = 10, file = name, status = 'replace')
    write (10, '(a)') 'from node 0'
    close (10)
  end if
  call pfcopy(7, 0, name)
  open (unit = 10, file = name, status = 'old')
  read (10, '(a)') folder
  if (folder /= 'from node 0') call parerr(10)
  call synch(8)
  if (tcgtime() < 0) call parerr(11)
  call pend
  if (me == 0) print '(a)', 'ok'
end program fortran
