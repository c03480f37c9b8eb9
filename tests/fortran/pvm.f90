! Packing and reductions in PVM, in free form.
program packs
  implicit none
  include 'fpvm3.h'
  external pvmfinitsend, pvmfpack, pvmfunpack, pvmfsetrbuf, pvmfmkbuf, pvmfgetsbuf, pvmmax, pvmsum
  integer :: info, bufid, old, x(3), y(3)
  character(len=5) :: text
  call pvmfmkbuf(PVMDATARAW, bufid)
  call pvmfgetsbuf(old)
  if (bufid <= 0 .or. old /= 0) stop 1
  call pvmfinitsend(PVMDATADEFAULT, bufid)
  call pvmfpack(STRING, 'hello', 5, 1, info)
  if (info /= PvmOk) stop 2
  call pvmfsetrbuf(bufid, old)
  call pvmfunpack(STRING, text, 5, 1, info)
  if (info /= PvmOk .or. text /= 'hello') stop 3
  x = [1, 7, -2]
  y = [3, 4, -1]
  call pvmmax(INTEGER4, x, y, 3, info)
  if (info /= PvmOk .or. any(x /= [3, 7, -1])) stop 4
  call pvmsum(INTEGER4, x, y, 3, info)
  if (any(x /= [6, 11, -2])) stop 5
  print '(a)', 'ok'
end program packs
