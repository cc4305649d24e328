import os, threading
def test_f():
    e=threading.Event(); t=threading.Thread(target=e.wait); t.start()
    try:
        pid=os.fork()
        if pid==0: os._exit(0)
        os.waitpid(pid,0)
    finally:
        e.set(); t.join()
