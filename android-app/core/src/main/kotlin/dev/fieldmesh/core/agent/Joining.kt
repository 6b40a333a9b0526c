package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.PairNode
import dev.fieldmesh.core.wire.PairReply
import dev.fieldmesh.core.wire.PairRequest
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.withContext
import okhttp3.HttpUrl
import okhttp3.Request
import okhttp3.RequestBody
import okio.BufferedSink
import java.io.IOException
import java.security.cert.CertificateException
import java.security.cert.X509Certificate
import java.time.Duration
import javax.net.ssl.X509TrustManager

/**
 * Shows the controller that this app was given [code], so that the nodes let its
 * key in, and gives what it was admitted to. Nothing is said to another than the code's
 * controller, and nothing of an answer is kept whose proof is wrong.
 *
 * @throws AgentException when it is refused, out of reach, or another answers
 */
suspend fun join(
    code: PairingCode,
    own: Identity,
    io: CoroutineDispatcher,
    way: Way = Way.PREFERRED,
    timeout: Duration = PATIENCE,
): Admission = withContext(io) {
    val trust = CodesTrust(code)
    val url = HttpUrl.Builder().scheme("https").host(code.host).port(code.port).addPathSegments("v1/pair").build()
    val request = Request.Builder().url(url).post(Proof { code.joins(trust.controller(), own.pin) }).build()
    Clients(httpClient(own, trust, timeout)) { way }.each { http ->
        http.exchange(request) { response ->
            val reply = response.read(PairReply.serializer())
            val right = code.admits(trust.controller(), own.pin, reply.name, reply.role)
            if (reply.proof.lowercase() != right) {
                throw AgentException.WrongNode(CertificateException("the answer's proof is wrong"))
            }
            val served = reply.controller?.let { Pairing(code.host, it.port, trust.controller()) }
            // The code is used up: one node that the app cannot call must not cost it the others.
            val nodes = reply.nodes.mapNotNull(::fleetNode)
            Admission(nodes, served, reply.nodes.map { it.name } - nodes.map { it.name }.toSet())
        }
    }
}

private val PATIENCE = Duration.ofSeconds(10)

/** Null where the app cannot call it, as at a link-local address of IPv6, which has the controller's zone. */
private fun fleetNode(node: PairNode): FleetNode? =
    Pairing.parse("fieldmesh:${node.address}#${node.pin}")?.let { FleetNode(node.name, it) }

/** The request's text is made after the handshake, which tells the controller's key; its length is known before. */
private class Proof(private val prove: () -> String) : RequestBody() {
    override fun contentType() = JSON

    override fun contentLength() = text("0".repeat(64)).size.toLong()

    override fun writeTo(sink: BufferedSink) {
        sink.write(text(prove()))
    }

    override fun isOneShot() = true

    private fun text(proof: String) =
        WireJson.encodeToString(PairRequest.serializer(), PairRequest(1, PairingCode.ROLE, proof)).toByteArray()
}

/** Admits the one server whose key the code tells, and keeps that key. */
private class CodesTrust(private val code: PairingCode) : X509TrustManager {
    @Volatile
    private var seen: Pin? = null

    fun controller(): Pin = seen ?: throw IOException("no handshake was made")

    override fun checkServerTrusted(chain: Array<X509Certificate>, authType: String) {
        val got = Pin.of(chain.firstOrNull() ?: throw CertificateException("the controller shows no certificate"))
        if (!code.fits(got)) throw WrongKeyException("the key ${got.hex.take(12)}… is not that of the code")
        seen = got
    }

    override fun checkClientTrusted(chain: Array<X509Certificate>, authType: String) =
        throw CertificateException("the app serves nobody")

    override fun getAcceptedIssuers(): Array<X509Certificate> = emptyArray()
}
