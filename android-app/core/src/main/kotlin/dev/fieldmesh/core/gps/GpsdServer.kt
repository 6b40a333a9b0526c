package dev.fieldmesh.core.gps

import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Job
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelChildren
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.SharedFlow
import kotlinx.coroutines.isActive
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import java.io.BufferedReader
import java.io.Closeable
import java.io.IOException
import java.io.OutputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.SocketException
import java.util.concurrent.atomic.AtomicInteger

/**
 * Speaks gpsd's JSON protocol (gpsd_json(5)) to programs on the same phone:
 * VERSION, WATCH, DEVICES and POLL asked, TPV and SKY told. It listens on the
 * loopback address only; every app on the phone can read it there.
 */
class GpsdServer(private val fixes: SharedFlow<Fix>, private val io: CoroutineDispatcher, port: Int = GPSD_PORT) :
    AutoCloseable {
    private val listener = ServerSocket(port, BACKLOG, InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1)))
    private val clients = AtomicInteger()

    val port: Int get() = listener.localPort

    override fun close() = listener.close()

    /** Serves until it is cancelled or closed. */
    suspend fun run(): Unit = coroutineScope {
        val closer = closeWhenCancelled(listener)
        try {
            while (isActive) {
                val socket = withContext(io) { listener.accept() }
                if (clients.incrementAndGet() > MOST_CLIENTS) {
                    clients.decrementAndGet()
                    socket.close()
                } else {
                    launch(io) { serve(socket) }
                }
            }
        } catch (e: SocketException) {
            if (!listener.isClosed) throw e
        } finally {
            closer.cancel()
            coroutineContext.job.cancelChildren()
        }
    }

    private suspend fun serve(socket: Socket) = try {
        coroutineScope {
            closeWhenCancelled(socket)
            try {
                socket.tcpNoDelay = true
                converse(socket)
            } catch (_: IOException) {
                // the client has gone
            } finally {
                coroutineContext.job.cancelChildren()
            }
        }
    } finally {
        socket.close()
        clients.decrementAndGet()
    }

    /** A blocking call on a socket ends when the socket is closed, and by nothing else. */
    private fun CoroutineScope.closeWhenCancelled(socket: Closeable): Job =
        launch(start = CoroutineStart.UNDISPATCHED) {
            try {
                awaitCancellation()
            } finally {
                socket.close()
            }
        }

    private suspend fun CoroutineScope.converse(socket: Socket) {
        // A client that does not read loses the oldest lines, and holds up nobody.
        val out = Channel<String>(QUEUED_LINES, BufferOverflow.DROP_OLDEST)
        out.send(GpsdText.version())
        launch(io) { write(socket, out) }
        var watching: Job? = null
        val input = socket.getInputStream().bufferedReader(Charsets.US_ASCII)
        while (isActive) {
            val request = withContext(io) { input.readRequest() } ?: return
            GpsdText.answer(request, fixes.replayCache.lastOrNull()).forEach { out.send(it) }
            when (GpsdText.watch(request)) {
                true -> if (watching == null) watching = launch { tell(out) }
                false -> {
                    watching?.cancel()
                    watching = null
                }
                null -> Unit
            }
        }
    }

    private suspend fun tell(out: Channel<String>): Nothing = fixes.collect { fix ->
        out.send(GpsdText.tpv(fix))
        GpsdText.sky(fix)?.let { out.send(it) }
    }

    private suspend fun write(socket: Socket, out: Channel<String>) {
        val stream: OutputStream = socket.getOutputStream()
        try {
            for (line in out) stream.write((line + "\r\n").toByteArray(Charsets.US_ASCII))
        } catch (_: IOException) {
            socket.close() // ends the reader too
        }
    }

    private companion object {
        const val GPSD_PORT = 2947 // IANA's
        const val BACKLOG = 8
        const val MOST_CLIENTS = 16
        const val QUEUED_LINES = 64
    }
}

private const val LONGEST_REQUEST = 4096

/** The next request, which ends with ";" or a line's end; null at the stream's end. */
private fun BufferedReader.readRequest(): String? {
    val text = StringBuilder()
    while (true) {
        val c = read()
        when {
            c < 0 -> return null
            c == ';'.code || c == '\n'.code -> if (text.isNotBlank()) return text.toString().trim()
            text.length >= LONGEST_REQUEST -> throw IOException("a request of more than $LONGEST_REQUEST characters")
            else -> text.append(c.toChar())
        }
    }
}
