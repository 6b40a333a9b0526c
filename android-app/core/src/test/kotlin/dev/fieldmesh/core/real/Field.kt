package dev.fieldmesh.core.real

import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.PinnedTrust
import dev.fieldmesh.core.agent.tlsContext
import dev.fieldmesh.core.node.OwnAgent
import java.io.File
import java.net.URL
import java.security.KeyFactory
import java.security.cert.CertificateFactory
import java.security.cert.X509Certificate
import java.security.spec.PKCS8EncodedKeySpec
import java.util.Base64
import java.util.concurrent.TimeUnit
import javax.net.ssl.HttpsURLConnection

/** The nodes that the script agent-test has laid out: their agents are started, killed and asked here. */
class Field(private val dir: File, private val namespaces: String) {
    val controller: Identity = identity(File(dir, "fleet"), "controller")
    private val processes = mutableMapOf<String, Process>()

    fun pairing(node: String): Pairing =
        Pairing(HOSTS.getValue(node), 7443, identity(File(dir, "fleet/nodes/$node"), "node").pin)

    /** Lets a phone's key in, as a person does it: an entry in authorized.json. */
    fun letIn(node: String, app: Pin) {
        val file = File(dir, "fleet/nodes/$node/authorized.json")
        val entry = """{"name": "phone", "role": "app", "pin": "${app.hex}"}"""
        file.writeText(file.readText().trim().removeSuffix("]") + ", $entry]")
        giveKeys(node)
    }

    /** The unprivileged half of the agent reads the keys, and writes down which apps it is told about. */
    fun giveKeys(node: String) = run("chown", "-R", "$NOBODY:$NOBODY", "$dir/fleet/nodes/$node")

    /** Takes away what a node was told by the controller about phones. */
    fun forgetApps(node: String) =
        check(File(dir, "$node/face/apps.json").delete()) { "$node was told about no phones" }

    /** Puts an agent where the app looks for that of its own phone, which runs as no more than an app's user. */
    fun ownAgent(): OwnAgent {
        val programs = File(dir, "phone/programs").apply { mkdirs() }
        val home = File(dir, "phone/home").apply { mkdirs() }
        val user = "setpriv --reuid=$NOBODY --regid=$NOBODY --clear-groups"
        val commands = mapOf(OwnAgent.AGENT to "$user $dir/fieldmesh-agent", OwnAgent.IPERF3 to "iperf3")
        for ((name, command) in commands) {
            File(programs, name).apply { writeText("#!/bin/sh\nexec $command \"$@\"\n") }.setExecutable(true)
        }
        run("chown", "$NOBODY:$NOBODY", "$home")
        return OwnAgent(programs, home, home)
    }

    /**
     * Starts an agent as a stock phone's app does: without root, on a network that stands, and with what it kept as
     * another before out of its reach.
     */
    fun startStock(node: String, address: String, app: Pin) {
        val home = File(dir, "$node-stock").apply { mkdirs() }
        run("chown", "$NOBODY:$NOBODY", "$home")
        giveKeys(node)
        val reno = "net.ipv4.tcp_congestion_control=reno" // this machine's may pace
        run("ip", "netns", "exec", namespace(node), "sysctl", "-qw", reno)
        run("ip", "-n", namespace(node), "address", "add", address, "dev", "wlan0")
        File(dir, "$node.yaml").writeText(
            """
            node: $node
            interface: wlan0
            privileges: none
            gpsd: none
            state_dir: $home
            keys_dir: $dir/fleet/nodes/$node
            app_key: ${app.hex}
            """.trimIndent() + "\n",
        )
        start(node, "setpriv", "--reuid=$NOBODY", "--regid=$NOBODY", "--clear-groups")
    }

    /** Has an agent end in order. */
    fun stop(node: String) {
        val process = processes.remove(node) ?: return
        process.destroy()
        check(process.waitFor(60, TimeUnit.SECONDS)) { "the agent of $node goes on" }
    }

    /** Starts an agent. It measures time, so it has the usual priority even if these tests have not. */
    fun start(node: String, vararg asUser: String) {
        val log = File(dir, "$node.log")
        processes[node] =
            ProcessBuilder(
                "chrt",
                "--other",
                "0",
                "ip",
                "netns",
                "exec",
                namespace(node),
                *asUser,
                "$dir/fieldmesh-agent",
                "up",
                "--config",
                "$dir/$node.yaml",
            )
                .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log)).start()
    }

    /** Kills the half of the agent that faces the network, without a word. */
    fun killFace(node: String) {
        val pids = output("ip", "netns", "pids", namespace(node)).lines().filter(String::isNotBlank)
        val face = pids.first { pid -> File("/proc/$pid/cmdline").readText().split('\u0000').getOrNull(1) == "face" }
        run("kill", "-KILL", face)
    }

    private fun namespace(node: String) = "$namespaces-${if (node == "reader") "desk" else node}"

    fun cut(node: String) = run("ip", "link", "set", node, "down")

    fun mend(node: String) = run("ip", "link", "set", node, "up")

    /** Gives a node another address on its control link. */
    fun readdress(node: String, address: String) {
        run("ip", "-n", namespace(node), "address", "flush", "dev", "ctl0")
        run("ip", "-n", namespace(node), "address", "add", "$address/24", "dev", "ctl0")
    }

    fun stop() = processes.values.forEach { process ->
        process.destroy()
        if (!process.waitFor(30, TimeUnit.SECONDS)) process.destroyForcibly()
    }

    fun log(): String = processes.keys.joinToString("\n") {
        "== $it\n" +
            File(dir, "$it.log").takeIf(File::exists)?.readText().orEmpty().takeLast(6000)
    }

    /** What `keys pair` shows; the process ends by itself. */
    class Offer(val process: Process, val code: String, val picture: String)

    /** Starts `fieldmesh serve`, with the campaigns that ship. */
    fun serve() {
        val arguments = listOf(
            "serve", "--fleet", "$dir/fleet/fleet.yaml", "--campaigns", "$dir/campaigns", "--runs", "$dir/runs",
            "--place", "bench", "--listen", "127.0.0.1:$SERVED",
        )
        processes["serve"] = ProcessBuilder(listOf("$dir/fieldmesh") + arguments).redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(File(dir, "serve.log"))).start()
    }

    /** Starts `keys pair`, for the app or for a node. */
    fun offer(name: String, isApp: Boolean = true, isExperimenter: Boolean = false): Offer {
        val role = if (isExperimenter) {
            listOf("--app", "--experimenter", "--serve-port", "$SERVED")
        } else if (isApp) {
            listOf("--app")
        } else {
            listOf("--address", "127.0.0.9:7443") // the reader has 127.0.0.1
        }
        val arguments = listOf("keys", "pair", name, "--dir", "$dir/fleet", "--listen", "127.0.0.1:0") + role
        val process = ProcessBuilder(listOf("$dir/fieldmesh") + arguments)
            .redirectErrorStream(true).start()
        processes["keys pair"] = process
        val shown = mutableListOf<String>()
        process.inputStream.bufferedReader().lineSequence().first { line ->
            shown.add(line) && "FIELDMESH-PAIR/" in line
        }
        return Offer(process, shown.last().trim(), shown.filter { line -> line.any { it in "█▀▄" } }.joinToString("\n"))
    }

    /** One call as the controller makes it. */
    fun call(node: String, method: String, path: String, body: String? = null): String {
        val pairing = pairing(node)
        val connection = URL("https://${pairing.host}:${pairing.port}$path").openConnection() as HttpsURLConnection
        connection.sslSocketFactory = tlsContext(controller, PinnedTrust(pairing.pin)).socketFactory
        connection.setHostnameVerifier { _, _ -> true }
        connection.requestMethod = method
        if (body != null) {
            connection.doOutput = true
            connection.setRequestProperty("Content-Type", "application/json")
            connection.outputStream.use { it.write(body.toByteArray()) }
        }
        val text = (
            if (connection.responseCode ==
                200
            ) {
                connection.inputStream
            } else {
                connection.errorStream
            }
            ).reader().readText()
        check(connection.responseCode == 200) { "$method $path: ${connection.responseCode} $text" }
        return text
    }

    private fun run(vararg command: String) {
        output(*command)
    }

    private fun output(vararg command: String): String {
        val process = ProcessBuilder(*command).redirectErrorStream(true).start()
        val text = process.inputStream.reader().readText()
        check(process.waitFor() == 0) { "${command.toList()}: $text" }
        return text
    }

    private fun identity(folder: File, stem: String): Identity {
        val certificate = File(folder, "$stem.crt").inputStream().use {
            CertificateFactory.getInstance("X.509").generateCertificate(it)
        }
        val text = File(folder, "$stem.key").readLines().filterNot { it.startsWith("-----") }.joinToString("")
        val key = KeyFactory.getInstance("EC").generatePrivate(PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)))
        return Identity(certificate as X509Certificate, key)
    }

    private companion object {
        const val NOBODY = 65534
        const val SERVED = 17448

        /** Where the script puts them. */
        val HOSTS = mapOf(
            "car" to "192.168.1.2",
            "roadside" to "192.168.2.2",
            "alpha" to "192.168.3.2",
            "bravo" to "192.168.4.2",
            "reader" to "127.0.0.1",
        )
    }
}
