c     Packing in PVM, in fixed form: what was packed is unpacked.
      program packs
      implicit none
      include 'fpvm3.h'
      integer info, bufid, old, i, bytes, tag, tid, value
      integer n(6), m(6)
      integer*2 s(2), s2(2)
      integer*8 l, l2
      real*4 r, r2
      real*8 d(4), d2(4)
      complex*8 c, c2
      complex*16 z, z2
      character*8 text, text2
      do 10 i = 1, 6
         n(i) = i
         m(i) = 0
   10 continue
      s(1) = -5
      s(2) = 6
      l = 5000000000_8
      r = 1.5
      d(1) = 2.5d0
      d(3) = -3.5d0
      c = (1.0, 2.0)
      z = (3.0d0, 4.0d0)
      text = 'weft'
      do 20 value = PVMDEFAULT, PVMRAW
         call pvmfinitsend(value, bufid)
         if (bufid .le. 0) stop 1
         call pvmfpack(INTEGER4, n, 3, 2, info)
         if (info .ne. PvmOk) stop 2
         call pvmfpack(INTEGER2, s, 2, 1, info)
         call pvmfpack(INTEGER8, l, 1, 1, info)
         call pvmfpack(REAL4, r, 1, 1, info)
         call pvmfpack(REAL8, d, 2, 2, info)
         call pvmfpack(COMPLEX8, c, 1, 1, info)
         call pvmfpack(COMPLEX16, z, 1, 1, info)
         call pvmfpack(STRING, text, 8, 1, info)
         if (info .ne. PvmOk) stop 3
         call pvmfbufinfo(bufid, bytes, tag, tid, info)
         if (info .ne. PvmOk .or. bytes .lt. 70) stop 4
         call pvmfsetrbuf(bufid, old)
         call pvmfunpack(INTEGER4, m, 3, 2, info)
         call pvmfunpack(INTEGER2, s2, 2, 1, info)
         call pvmfunpack(INTEGER8, l2, 1, 1, info)
         call pvmfunpack(REAL4, r2, 1, 1, info)
         call pvmfunpack(REAL8, d2, 2, 2, info)
         call pvmfunpack(COMPLEX8, c2, 1, 1, info)
         call pvmfunpack(COMPLEX16, z2, 1, 1, info)
         call pvmfunpack(STRING, text2, 8, 1, info)
         if (info .ne. PvmOk) stop 5
         if (m(1) .ne. 1 .or. m(2) .ne. 0 .or. m(5) .ne. 5) stop 6
         if (s2(1) .ne. -5 .or. s2(2) .ne. 6 .or. l2 .ne. l) stop 7
         if (r2 .ne. r .or. d2(1) .ne. d(1) .or. d2(3) .ne. d(3)) stop 8
         if (c2 .ne. c .or. z2 .ne. z .or. text2 .ne. text) stop 9
         call pvmfsetopt(PVMAUTOERR, 0, old)
         call pvmfunpack(BYTE1, text2, 1, 1, info)
         if (info .ne. PvmNoData) stop 10
         call pvmffreebuf(bufid, info)
         if (info .ne. PvmOk) stop 11
         call pvmffreebuf(bufid, info)
         if (info .ne. PvmNoSuchBuf) stop 12
         call pvmfpack(99, n, 1, 1, info)
         if (info .ne. PvmBadParam) stop 13
         call pvmfsetopt(PVMAUTOERR, 1, old)
         if (old .ne. 0) stop 14
   20 continue
      print '(a)', 'ok'
      end
