"""Programs that are known to execute code in their arguments, or to run other programs.

The tables let a question name this risk before a program runs. They cannot be complete, and a program may have another
name. So the sandbox enforces the second one: without `runs=any`, the kernel lets a program execute no other file.
"""

from __future__ import annotations

import re

# Shells, interpreters, debuggers and launchers: they execute code in their arguments.
_RUN_CODE = """
    ash at awk bash batch bpftrace bpython bun busybox bwrap capsh cgexec chez chezscheme chpst chroot chrt clisp
    clojure coverage cpulimit csh csi dash deno doas dtach ecl elixir elvish emacs env envdir erl escript expect expectk
    fakeroot faketime firejail fish flask flock gawk gdb gdbserver gforth ghci gjs gosu graalpy groovy gsi gst guile
    gunicorn hhvm hy hypercorn idle iex ionice ipython irb janet java jjs jruby jrunscript js jshell julia jython kotlin
    ksh ld.so lldb logsave loksh ltrace lua luahbtex luajit lualatex luatex luau mawk micropython mksh mono mruby nawk
    newgrp nice node nodejs nohup nsenter nu numactl ocaml octave oksh osascript parallel pdb pdksh perf perl phar php
    phpdbg pkexec posh prlimit proot prove ptpython pudb pwsh pydoc pypy pyston python pythonw qjs r racket raku rakudo
    rbash rc rscript ruby run-parts run0 runghc runhaskell runuser rzsh sbcl scala scheme screen script setarch setpriv
    setsid setuidgid sg sh socat stap start-stop-daemon stdbuf strace su su-exec sudo swipl systemd-run taskset tcc
    tclsh tcsh texlua time timeout tini tmux toybox truffleruby ts-node tsx unbuffer unshare utop uvicorn uwsgi valgrind
    watch wine xargs xonsh xterm yash zellij zsh
"""

# Programs that run others: named in an option, in a file that they read (such as the settings of a repository), or
# as a part of their work.
_RUN_OTHERS = """
    abduco ag alacritty ansible ant apk apt aptitude aria2c asciidoctor autoconf automake autossh bazel bb borg brew
    bsdtar bundle bundler busctl byobu bzcmp bzdiff bzegrep bzfgrep bzgrep bzless bzmore bzr c++ calibre cargo cc ccache
    chrome chromium clang clang++ cmake composer composite conda convert coredumpctl cpack cpan cpanm cpio cpp crontab
    crun cscope ctags ctest ctr curlftpfs cvs darcs dbus dc debootstrap debuild diff diff3 distcc dnf docker dotnet
    doxygen dpkg dracut duckdb duplicity ed editor egrep elinks emacsclient entr ex fd fdfind fgrep find firefox flatpak
    flex fossil ftp fzf g++ gcc gem gh ghc ghostscript gimp git gitk glab gmake gnuplot go gp gpg gpg2 gpgconf gpgsm
    gradle gs gtar guix gunzip gvim gzexe helm hg hugo hyperfine identify ifdown ifup info inkscape install ip java
    javac jed jekyll jest jj joe journalctl jupyter just kitty konsole kotlinc kubectl latex latexmk lazygit ld ldd less
    lesspipe lex lftp libreoffice libtool links login loginctl luarocks lxc lynx lzcmp lzdiff lzegrep lzfgrep lzgrep
    lzless lzmore m4 machinectl magick mail mailx make makepkg mamba man mariadb matlab maxima mc mcedit meson micro
    mkdocs mogrify mongo mongosh more mosh most mount msbuild msgexec msgfilter mutt mvn mysql nano nc ncat neomutt
    nerdctl netcat nginx ninja nix nmap nox npm npx nvim opam openssl openvpn packer pacman pager pandoc patch pdflatex
    pdftex perlbug perlthanks pg pico pip pipx pnpm podman poetry ps2pdf psql pytest qemu rails rake rclone red restic
    rg rlogin rpm rpmbuild rsh rsync runc runit rustc rview rvim rxvt sage sbt scons scp sdiff sed see sensible service
    sftp slogin snap soffice sort sphinx split sqlite sqlplus ssh sshpass stunnel sudoedit svn swift systemctl systemd
    tar task tcpdump telnet terminal terraform tex tig timedatectl tnftp tox umount uncompress urxvt uv uvx vagrant vi
    view vigr vim vimdiff vipw visudo w3m wget wkhtmltopdf xdg xelatex xvfb xzcmp xzdiff xzegrep xzfgrep xzgrep xzless
    xzmore yacc yarn youtube-dl yt-dlp yum zcat zcmp zdiff zegrep zfgrep zgrep zig zip zless zmore znew zypper
"""

_CODE = frozenset([*_RUN_CODE.split(), "wish"])
_OTHERS = frozenset(_RUN_OTHERS.split())

_LOADER = re.compile(r"ld(-linux|-musl|64|-)?.*\.so(\.[0-9]+)*\Z")
_VERSION = re.compile(r"[-.]?[0-9][0-9.a-z]*\Z")
_SEPARATORS = (re.compile(r"[^a-z+]+"), re.compile(r"[-._]"))
_SHORTEST_WORD = 2


def runs_code(binary: str) -> bool:
    """Return whether a program of this name executes code in its arguments: a shell, an interpreter or a launcher.

    Each word of the name counts, so that versions and platforms do not matter.

    Example:
        >>> runs_code("/usr/bin/perl5.36-x86_64-linux-gnu"), runs_code("git")
        (True, False)
    """
    return _is_in(_CODE, binary) or bool(_LOADER.match(_name(binary)))


def runs_others(binary: str) -> bool:
    """Return whether a program of this name runs other programs.

    Example:
        >>> runs_others("git"), runs_others("bash"), runs_others("cat")
        (True, True, False)
    """
    return runs_code(binary) or _is_in(_OTHERS, binary)


def _is_in(known: frozenset[str], binary: str) -> bool:
    name = _name(binary)
    words = (word for separator in _SEPARATORS for word in separator.split(name) if len(word) >= _SHORTEST_WORD)
    return not known.isdisjoint({name, _VERSION.sub("", name), *words})


def _name(binary: str) -> str:
    return binary.rpartition("/")[2].lower()
