package dev.fieldmesh.core.real

import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Service
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.isActive
import java.net.DatagramPacket
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.MulticastSocket
import java.net.NetworkInterface
import java.net.SocketTimeoutException
import java.nio.ByteBuffer

/** Asks as a phone's multicast DNS does, from the port of responders, on one interface: there is no Android here. */
class MulticastDns(private val interfaceName: String) : Finder {
    private val group = InetSocketAddress(InetAddress.getByName("224.0.0.251"), 5353)

    override fun peers(): Flow<Pairing> = flow {
        MulticastSocket(group.port).use { socket ->
            val link = NetworkInterface.getByName(interfaceName)
            socket.networkInterface = link
            socket.joinGroup(group, link)
            socket.soTimeout = 1000
            while (currentCoroutineContext().isActive) {
                socket.send(DatagramPacket(QUESTION, QUESTION.size, group))
                val got = DatagramPacket(ByteArray(9000), 9000)
                try {
                    socket.receive(got) // it may be the question
                    peer(ByteBuffer.wrap(got.data, 0, got.length))?.let { emit(it) }
                } catch (_: SocketTimeoutException) {
                    // It asks again.
                }
            }
        }
    }.flowOn(Dispatchers.IO)

    /** What an answer says of the one service in it (RFC 1035, section 4). */
    private fun peer(answer: ByteBuffer): Pairing? {
        answer.position(4)
        val questions = answer.short
        val records = answer.short + answer.short + answer.short
        if (questions > 0) return null
        var host: String? = null
        var port = 0
        var pin: ByteArray? = null
        repeat(records) {
            skipName(answer)
            val type = answer.short.toInt()
            answer.position(answer.position() + 6)
            val data = ByteArray(answer.short.toInt()).also { answer.get(it) }
            when (type) {
                A -> host = InetAddress.getByAddress(data).hostAddress
                SRV -> port = ByteBuffer.wrap(data).getShort(4).toInt() and 0xffff
                TXT -> pin = data.copyOfRange(1 + Service.PIN.length + 1, 1 + data[0])
            }
        }
        return Service.read(host, port, pin)
    }

    private fun skipName(from: ByteBuffer) {
        while (true) {
            val length = from.get().toInt() and 0xff
            if (length == 0) return
            if (length >= POINTER) {
                from.get()
                return
            }
            from.position(from.position() + length)
        }
    }

    private companion object {
        const val A = 1
        const val PTR = 12
        const val TXT = 16
        const val SRV = 33
        const val POINTER = 0xc0
        val QUESTION: ByteArray = run {
            val labels = "${Service.TYPE}.local".split('.')
            val name = labels.flatMap { listOf(it.length.toByte()) + it.toByteArray().toList() }
            byteArrayOf(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + name + byteArrayOf(0, 0, PTR.toByte(), 0, 1)
        }
    }
}
